"builtin.module"() <{sym_name = "jit_unsigned"}> ({
  "func.func"() <{function_type = (tensor<8xui32>, tensor<8xui64>) -> (tensor<8xui32>, tensor<8xui32>, tensor<8xui32>, tensor<8xui32>, tensor<8xui64>, tensor<8xui64>, tensor<8xui64>, tensor<8xf64>, tensor<8xf64>, tensor<8xi1>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}, {jax.result_info = "result[9]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg14: tensor<8xui32>, %arg15: tensor<8xui64>):
    %44 = "stablehlo.constant"() <{value = dense<2147483648> : tensor<ui32>}> : () -> tensor<ui32>
    %45 = "stablehlo.constant"() <{value = dense<9> : tensor<ui64>}> : () -> tensor<ui64>
    %46 = "stablehlo.constant"() <{value = dense<1000> : tensor<i64>}> : () -> tensor<i64>
    %47 = "stablehlo.constant"() <{value = dense<3> : tensor<i64>}> : () -> tensor<i64>
    %48 = "stablehlo.constant"() <{value = dense<7> : tensor<ui32>}> : () -> tensor<ui32>
    %49 = "stablehlo.constant"() <{value = dense<1099511627783> : tensor<ui64>}> : () -> tensor<ui64>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %51 = "stablehlo.multiply"(%arg15, %50) : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    %52 = "stablehlo.multiply"(%arg14, %arg14) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    %53 = "stablehlo.broadcast_in_dim"(%48) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %54 = "stablehlo.shift_right_logical"(%arg14, %53) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    %55 = "func.call"(%arg14, %47) <{callee = @floor_divide}> : (tensor<8xui32>, tensor<i64>) -> tensor<8xui32>
    %56 = "func.call"(%arg14, %46) <{callee = @remainder}> : (tensor<8xui32>, tensor<i64>) -> tensor<8xui32>
    %57 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %58 = "stablehlo.shift_right_logical"(%51, %57) : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    %59 = "func.call"(%51, %47) <{callee = @floor_divide_0}> : (tensor<8xui64>, tensor<i64>) -> tensor<8xui64>
    %60 = "func.call"(%51, %46) <{callee = @remainder_1}> : (tensor<8xui64>, tensor<i64>) -> tensor<8xui64>
    %61 = "stablehlo.convert"(%arg14) : (tensor<8xui32>) -> tensor<8xf64>
    %62 = "stablehlo.convert"(%51) : (tensor<8xui64>) -> tensor<8xf64>
    %63 = "stablehlo.broadcast_in_dim"(%44) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %64 = "stablehlo.compare"(%arg14, %63) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xi1>
    "func.return"(%52, %54, %55, %56, %58, %59, %60, %61, %62, %64) : (tensor<8xui32>, tensor<8xui32>, tensor<8xui32>, tensor<8xui32>, tensor<8xui64>, tensor<8xui64>, tensor<8xui64>, tensor<8xf64>, tensor<8xf64>, tensor<8xi1>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xui32>, tensor<i64>) -> tensor<8xui32>, sym_name = "floor_divide", sym_visibility = "private"}> ({
  ^bb0(%arg12: tensor<8xui32>, %arg13: tensor<i64>):
    %41 = "stablehlo.convert"(%arg13) : (tensor<i64>) -> tensor<ui32>
    %42 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %43 = "stablehlo.divide"(%arg12, %42) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    "func.return"(%43) : (tensor<8xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xui32>, tensor<i64>) -> tensor<8xui32>, sym_name = "remainder", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<8xui32>, %arg11: tensor<i64>):
    %23 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
    %24 = "stablehlo.constant"() <{value = dense<0> : tensor<ui32>}> : () -> tensor<ui32>
    %25 = "stablehlo.convert"(%arg11) : (tensor<i64>) -> tensor<ui32>
    %26 = "stablehlo.compare"(%25, %24) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %27 = "func.call"(%26, %23, %25) <{callee = @_where}> : (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %28 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %29 = "stablehlo.remainder"(%arg10, %28) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    %30 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %31 = "stablehlo.compare"(%29, %30) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xi1>
    %32 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %33 = "stablehlo.compare"(%29, %32) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xi1>
    %34 = "stablehlo.compare"(%27, %24) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %35 = "stablehlo.broadcast_in_dim"(%34) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<8xi1>
    %36 = "stablehlo.compare"(%33, %35) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %37 = "stablehlo.and"(%36, %31) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %38 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<8xui32>
    %39 = "stablehlo.add"(%29, %38) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    %40 = "stablehlo.select"(%37, %39, %29) : (tensor<8xi1>, tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
    "func.return"(%40) : (tensor<8xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg7: tensor<i1>, %arg8: tensor<ui32>, %arg9: tensor<ui32>):
    %22 = "stablehlo.select"(%arg7, %arg8, %arg9) : (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    "func.return"(%22) : (tensor<ui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xui64>, tensor<i64>) -> tensor<8xui64>, sym_name = "floor_divide_0", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<8xui64>, %arg6: tensor<i64>):
    %19 = "stablehlo.convert"(%arg6) : (tensor<i64>) -> tensor<ui64>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %21 = "stablehlo.divide"(%arg5, %20) : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    "func.return"(%21) : (tensor<8xui64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xui64>, tensor<i64>) -> tensor<8xui64>, sym_name = "remainder_1", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<8xui64>, %arg4: tensor<i64>):
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<ui64>}> : () -> tensor<ui64>
    %3 = "stablehlo.convert"(%arg4) : (tensor<i64>) -> tensor<ui64>
    %4 = "stablehlo.compare"(%3, %2) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
    %5 = "func.call"(%4, %1, %3) <{callee = @_where_2}> : (tensor<i1>, tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %7 = "stablehlo.remainder"(%arg3, %6) : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    %8 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %9 = "stablehlo.compare"(%7, %8) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xi1>
    %10 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %11 = "stablehlo.compare"(%7, %10) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xi1>
    %12 = "stablehlo.compare"(%5, %2) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<8xi1>
    %14 = "stablehlo.compare"(%11, %13) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %15 = "stablehlo.and"(%14, %9) : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %16 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<8xui64>
    %17 = "stablehlo.add"(%7, %16) : (tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    %18 = "stablehlo.select"(%15, %17, %7) : (tensor<8xi1>, tensor<8xui64>, tensor<8xui64>) -> tensor<8xui64>
    "func.return"(%18) : (tensor<8xui64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<ui64>, tensor<ui64>) -> tensor<ui64>, sym_name = "_where_2", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<i1>, %arg1: tensor<ui64>, %arg2: tensor<ui64>):
    %0 = "stablehlo.select"(%arg0, %arg1, %arg2) : (tensor<i1>, tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    "func.return"(%0) : (tensor<ui64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
