"builtin.module"() <{sym_name = "jit_moves"}> ({
  "func.func"() <{function_type = (tensor<2x3x4xf64>) -> (tensor<6x4xf64>, tensor<4x2x3xf64>, tensor<2x3x4xf64>, tensor<2x3x8xf64>, tensor<2x2x2xf64>, tensor<3x5x4xf64>, tensor<2x7x7xf64>, tensor<2x3x4xf64>, tensor<2x6x4xf64>, tensor<2x2x3x4xf64>, tensor<2x3x2xf64>, tensor<4x3x4xf64>, tensor<3x2x4xf64>, tensor<5x2x3x4xf64>, tensor<5xf64>, tensor<3x3xf64>, tensor<2x3x4xf64>, tensor<3xf64>, tensor<7xf64>, tensor<9x16xf64>, tensor<2x2xcomplex<f64>>, tensor<3x4x2xf64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}, {jax.result_info = "result[9]"}, {jax.result_info = "result[10]"}, {jax.result_info = "result[11]"}, {jax.result_info = "result[12]"}, {jax.result_info = "result[13]"}, {jax.result_info = "result[14]"}, {jax.result_info = "result[15]"}, {jax.result_info = "result[16]"}, {jax.result_info = "result[17]"}, {jax.result_info = "result[18]"}, {jax.result_info = "result[19]"}, {jax.result_info = "result[20]"}, {jax.result_info = "result[21]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg12: tensor<2x3x4xf64>):
    %67 = "stablehlo.constant"() <{value = dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f64>>}> : () -> tensor<complex<f64>>
    %68 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %69 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f64>}> : () -> tensor<f64>
    %70 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %71 = "stablehlo.reshape"(%arg12) : (tensor<2x3x4xf64>) -> tensor<6x4xf64>
    %72 = "stablehlo.transpose"(%arg12) <{permutation = array<i64: 2, 0, 1>}> : (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>
    %73 = "func.call"(%arg12) <{callee = @_flip}> : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    %74 = "stablehlo.concatenate"(%arg12, %arg12) <{dimension = 2 : i64}> : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x8xf64>
    %75 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 2, 3, 3>, start_indices = array<i64: 0, 0, 1>, strides = array<i64: 1, 2, 1>}> : (tensor<2x3x4xf64>) -> tensor<2x2x2xf64>
    %76 = "func.call"(%arg12, %70) <{callee = @_pad}> : (tensor<2x3x4xf64>, tensor<i64>) -> tensor<3x5x4xf64>
    %77 = "stablehlo.pad"(%arg12, %69) <{edge_padding_high = array<i64: -1, 0, 1>, edge_padding_low = array<i64: 1, 0, -1>, interior_padding = array<i64: 0, 2, 1>}> : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<2x7x7xf64>
    %78 = "func.call"(%arg12) <{callee = @_roll_static}> : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    %79 = "stablehlo.reshape"(%arg12) : (tensor<2x3x4xf64>) -> tensor<1x2x1x3x1x4xf64>
    %80 = "stablehlo.broadcast_in_dim"(%79) <{broadcast_dimensions = array<i64: 0, 1, 2, 3, 4, 5>}> : (tensor<1x2x1x3x1x4xf64>) -> tensor<1x2x2x3x1x4xf64>
    %81 = "stablehlo.reshape"(%80) : (tensor<1x2x2x3x1x4xf64>) -> tensor<2x6x4xf64>
    %82 = "stablehlo.broadcast_in_dim"(%arg12) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<2x3x4xf64>) -> tensor<1x2x3x4xf64>
    %83 = "stablehlo.broadcast_in_dim"(%arg12) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<2x3x4xf64>) -> tensor<1x2x3x4xf64>
    %84 = "stablehlo.concatenate"(%82, %83) <{dimension = 0 : i64}> : (tensor<1x2x3x4xf64>, tensor<1x2x3x4xf64>) -> tensor<2x2x3x4xf64>
    %85 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 2, 3, 4>, start_indices = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<2x3x2xf64>
    %86 = "stablehlo.broadcast_in_dim"(%arg12) <{broadcast_dimensions = array<i64: 0, 2, 3>}> : (tensor<2x3x4xf64>) -> tensor<2x2x3x4xf64>
    %87 = "stablehlo.reshape"(%86) : (tensor<2x2x3x4xf64>) -> tensor<4x3x4xf64>
    %88 = "func.call"(%arg12) <{callee = @rot90}> : (tensor<2x3x4xf64>) -> tensor<3x2x4xf64>
    %89 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 2, 3, 1>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<2x3x1xf64>
    %90 = "stablehlo.broadcast_in_dim"(%89) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<2x3x1xf64>) -> tensor<5x2x3x4xf64>
    %91 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5xf64>
    %92 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3x3xi64>
    %93 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x3xi64>
    %94 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3x3xi64>
    %95 = "stablehlo.add"(%92, %94) : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    %96 = "stablehlo.compare"(%95, %93) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %97 = "stablehlo.convert"(%96) : (tensor<3x3xi1>) -> tensor<3x3xf64>
    %98 = "func.call"(%arg12) <{callee = @tril}> : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    %99 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 1, 3, 3>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<1x3x3xf64>
    %100 = "stablehlo.reshape"(%99) : (tensor<1x3x3xf64>) -> tensor<3x3xf64>
    %101 = "func.call"(%100) <{callee = @_diag}> : (tensor<3x3xf64>) -> tensor<3xf64>
    %102 = "func.call"(%70, %68) <{callee = @_linspace}> : (tensor<i64>, tensor<i64>) -> tensor<7xf64>
    %103 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 1, 3, 4>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<1x3x4xf64>
    %104 = "stablehlo.reshape"(%103) : (tensor<1x3x4xf64>) -> tensor<3x4xf64>
    %105 = "stablehlo.slice"(%arg12) <{limit_indices = array<i64: 2, 3, 4>, start_indices = array<i64: 1, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<1x3x4xf64>
    %106 = "stablehlo.reshape"(%105) : (tensor<1x3x4xf64>) -> tensor<3x4xf64>
    %107 = "func.call"(%104, %106) <{callee = @kron}> : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<9x16xf64>
    %108 = "stablehlo.broadcast_in_dim"(%67) <{broadcast_dimensions = array<i64>}> : (tensor<complex<f64>>) -> tensor<2x2xcomplex<f64>>
    %109 = "stablehlo.transpose"(%arg12) <{permutation = array<i64: 1, 2, 0>}> : (tensor<2x3x4xf64>) -> tensor<3x4x2xf64>
    "func.return"(%71, %72, %73, %74, %75, %76, %77, %78, %81, %84, %85, %87, %88, %90, %91, %97, %98, %101, %102, %107, %108, %109) : (tensor<6x4xf64>, tensor<4x2x3xf64>, tensor<2x3x4xf64>, tensor<2x3x8xf64>, tensor<2x2x2xf64>, tensor<3x5x4xf64>, tensor<2x7x7xf64>, tensor<2x3x4xf64>, tensor<2x6x4xf64>, tensor<2x2x3x4xf64>, tensor<2x3x2xf64>, tensor<4x3x4xf64>, tensor<3x2x4xf64>, tensor<5x2x3x4xf64>, tensor<5xf64>, tensor<3x3xf64>, tensor<2x3x4xf64>, tensor<3xf64>, tensor<7xf64>, tensor<9x16xf64>, tensor<2x2xcomplex<f64>>, tensor<3x4x2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>, sym_name = "_flip", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<2x3x4xf64>):
    %66 = "stablehlo.reverse"(%arg11) <{dimensions = array<i64: 1>}> : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    "func.return"(%66) : (tensor<2x3x4xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x4xf64>, tensor<i64>) -> tensor<3x5x4xf64>, sym_name = "_pad", sym_visibility = "private"}> ({
  ^bb0(%arg9: tensor<2x3x4xf64>, %arg10: tensor<i64>):
    %64 = "stablehlo.convert"(%arg10) : (tensor<i64>) -> tensor<f64>
    %65 = "stablehlo.pad"(%arg9, %64) <{edge_padding_high = array<i64: 1, 0, 0>, edge_padding_low = array<i64: 0, 2, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<3x5x4xf64>
    "func.return"(%65) : (tensor<3x5x4xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>, sym_name = "_roll_static", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<2x3x4xf64>):
    %61 = "stablehlo.slice"(%arg8) <{limit_indices = array<i64: 2, 3, 4>, start_indices = array<i64: 0, 0, 3>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<2x3x1xf64>
    %62 = "stablehlo.slice"(%arg8) <{limit_indices = array<i64: 2, 3, 3>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf64>) -> tensor<2x3x3xf64>
    %63 = "stablehlo.concatenate"(%61, %62) <{dimension = 2 : i64}> : (tensor<2x3x1xf64>, tensor<2x3x3xf64>) -> tensor<2x3x4xf64>
    "func.return"(%63) : (tensor<2x3x4xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x4xf64>) -> tensor<3x2x4xf64>, sym_name = "rot90", sym_visibility = "private"}> ({
  ^bb0(%arg7: tensor<2x3x4xf64>):
    %59 = "func.call"(%arg7) <{callee = @_flip}> : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    %60 = "stablehlo.transpose"(%59) <{permutation = array<i64: 1, 0, 2>}> : (tensor<2x3x4xf64>) -> tensor<3x2x4xf64>
    "func.return"(%60) : (tensor<3x2x4xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>, sym_name = "tril", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<2x3x4xf64>):
    %49 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %50 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %51 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3x4xi64>
    %52 = "stablehlo.broadcast_in_dim"(%50) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3x4xi64>
    %53 = "stablehlo.add"(%51, %52) : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi64>
    %54 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4xi64>
    %55 = "stablehlo.compare"(%53, %54) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi1>
    %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<3x4xi1>) -> tensor<2x3x4xi1>
    %57 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<2x3x4xf64>
    %58 = "stablehlo.select"(%56, %arg6, %57) : (tensor<2x3x4xi1>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    "func.return"(%58) : (tensor<2x3x4xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x3xf64>) -> tensor<3xf64>, sym_name = "_diag", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<3x3xf64>):
    %48 = "func.call"(%arg5) <{callee = @diagonal}> : (tensor<3x3xf64>) -> tensor<3xf64>
    "func.return"(%48) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x3xf64>) -> tensor<3xf64>, sym_name = "diagonal", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<3x3xf64>):
    %24 = "stablehlo.constant"() <{value = dense<3> : tensor<i64>}> : () -> tensor<i64>
    %25 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %26 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %27 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %28 = "stablehlo.case"(%26) ({
      "stablehlo.return"(%25) : (tensor<i32>) -> ()
    }, {
      "stablehlo.return"(%25) : (tensor<i32>) -> ()
    }) : (tensor<i32>) -> tensor<i32>
    %29 = "stablehlo.case"(%28) ({
      %30 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi64>
      %31 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi64>
      %32 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
      %33 = "stablehlo.compare"(%30, %32) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
      %34 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
      %35 = "stablehlo.add"(%30, %34) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %36 = "stablehlo.select"(%33, %35, %30) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %37 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
      %38 = "stablehlo.compare"(%31, %37) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
      %39 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<3xi64>
      %40 = "stablehlo.add"(%31, %39) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %41 = "stablehlo.select"(%38, %40, %31) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
      %42 = "stablehlo.convert"(%36) : (tensor<3xi64>) -> tensor<3xi32>
      %43 = "stablehlo.convert"(%41) : (tensor<3xi64>) -> tensor<3xi32>
      %44 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x1xi32>
      %45 = "stablehlo.broadcast_in_dim"(%43) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x1xi32>
      %46 = "stablehlo.concatenate"(%44, %45) <{dimension = 1 : i64}> : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
      %47 = "stablehlo.gather"(%arg4, %46) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x3xf64>, tensor<3x2xi32>) -> tensor<3xf64>
      "stablehlo.return"(%47) : (tensor<3xf64>) -> ()
    }) : (tensor<i32>) -> tensor<3xf64>
    "func.return"(%29) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<i64>) -> tensor<7xf64>, sym_name = "_linspace", sym_visibility = "private"}> ({
  ^bb0(%arg2: tensor<i64>, %arg3: tensor<i64>):
    %6 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %7 = "stablehlo.constant"() <{value = dense<6.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %8 = "stablehlo.convert"(%arg2) : (tensor<i64>) -> tensor<f64>
    %9 = "stablehlo.convert"(%arg3) : (tensor<i64>) -> tensor<f64>
    %10 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6xf64>
    %11 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<6xf64>
    %12 = "stablehlo.divide"(%10, %11) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %13 = "stablehlo.reshape"(%8) : (tensor<f64>) -> tensor<1xf64>
    %14 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<6xf64>
    %15 = "stablehlo.subtract"(%14, %12) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %16 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xf64>) -> tensor<6xf64>
    %17 = "stablehlo.multiply"(%16, %15) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %18 = "stablehlo.reshape"(%9) : (tensor<f64>) -> tensor<1xf64>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xf64>) -> tensor<6xf64>
    %20 = "stablehlo.multiply"(%19, %12) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %21 = "stablehlo.add"(%17, %20) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %22 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<1xf64>
    %23 = "stablehlo.concatenate"(%21, %22) <{dimension = 0 : i64}> : (tensor<6xf64>, tensor<1xf64>) -> tensor<7xf64>
    "func.return"(%23) : (tensor<7xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<9x16xf64>, sym_name = "kron", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x4xf64>, %arg1: tensor<3x4xf64>):
    %0 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<3x4xf64>) -> tensor<3x1x4x1xf64>
    %1 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1, 3>}> : (tensor<3x4xf64>) -> tensor<1x3x1x4xf64>
    %2 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<3x1x4x1xf64>) -> tensor<3x3x4x4xf64>
    %3 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x3x1x4xf64>) -> tensor<3x3x4x4xf64>
    %4 = "stablehlo.multiply"(%2, %3) : (tensor<3x3x4x4xf64>, tensor<3x3x4x4xf64>) -> tensor<3x3x4x4xf64>
    %5 = "stablehlo.reshape"(%4) : (tensor<3x3x4x4xf64>) -> tensor<9x16xf64>
    "func.return"(%5) : (tensor<9x16xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
