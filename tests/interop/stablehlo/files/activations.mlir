module @jit_activations attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf64>) -> (tensor<4x6xf64> {jax.result_info = "result[0]"}, tensor<4x6xf64> {jax.result_info = "result[1]"}, tensor<4x6xf64> {jax.result_info = "result[2]"}, tensor<4x6xf64> {jax.result_info = "result[3]"}, tensor<4x6xf64> {jax.result_info = "result[4]"}, tensor<4x6xf64> {jax.result_info = "result[5]"}, tensor<4x3xf64> {jax.result_info = "result[6]"}, tensor<4x6xf64> {jax.result_info = "result[7]"}) {
    %cst = stablehlo.constant dense<49267.394260863592> : tensor<4x6xf64>
    %cst_0 = stablehlo.constant dense<22629.000061389095> : tensor<4x6xf64>
    %cst_1 = stablehlo.constant dense<4594.3238297098014> : tensor<4x6xf64>
    %cst_2 = stablehlo.constant dense<521.35794978015269> : tensor<4x6xf64>
    %cst_3 = stablehlo.constant dense<33.561714164750313> : tensor<4x6xf64>
    %cst_4 = stablehlo.constant dense<55592.301301039493> : tensor<4x6xf64>
    %cst_5 = stablehlo.constant dense<7003.3251411280507> : tensor<4x6xf64>
    %cst_6 = stablehlo.constant dense<2232.0053459468431> : tensor<4x6xf64>
    %cst_7 = stablehlo.constant dense<90.026019720384269> : tensor<4x6xf64>
    %cst_8 = stablehlo.constant dense<9.6049737398705161> : tensor<4x6xf64>
    %cst_9 = stablehlo.constant dense<2.000000e+00> : tensor<4x6xf64>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<4x6xf64>
    %cst_11 = stablehlo.constant dense<-709.78271289338397> : tensor<4x6xf64>
    %cst_12 = stablehlo.constant dense<8.000000e+00> : tensor<4x6xf64>
    %cst_13 = stablehlo.constant dense<3.3690764510008151> : tensor<4x6xf64>
    %cst_14 = stablehlo.constant dense<9.6089680906328585> : tensor<4x6xf64>
    %cst_15 = stablehlo.constant dense<17.081445074756591> : tensor<4x6xf64>
    %cst_16 = stablehlo.constant dense<12.048953980809666> : tensor<4x6xf64>
    %cst_17 = stablehlo.constant dense<9.3960352493800147> : tensor<4x6xf64>
    %cst_18 = stablehlo.constant dense<2.2605286322011726> : tensor<4x6xf64>
    %cst_19 = stablehlo.constant dense<2.9788666537210022> : tensor<4x6xf64>
    %cst_20 = stablehlo.constant dense<7.4097426995044895> : tensor<4x6xf64>
    %cst_21 = stablehlo.constant dense<6.160210979930536> : tensor<4x6xf64>
    %cst_22 = stablehlo.constant dense<5.0190504225118051> : tensor<4x6xf64>
    %cst_23 = stablehlo.constant dense<1.275366707599781> : tensor<4x6xf64>
    %cst_24 = stablehlo.constant dense<0.56418958354775506> : tensor<4x6xf64>
    %cst_25 = stablehlo.constant dense<557.53534081772773> : tensor<4x6xf64>
    %cst_26 = stablehlo.constant dense<1656.6630919416134> : tensor<4x6xf64>
    %cst_27 = stablehlo.constant dense<2246.3376081871097> : tensor<4x6xf64>
    %cst_28 = stablehlo.constant dense<1823.9091668790973> : tensor<4x6xf64>
    %cst_29 = stablehlo.constant dense<975.70850174320549> : tensor<4x6xf64>
    %cst_30 = stablehlo.constant dense<354.93777888781989> : tensor<4x6xf64>
    %cst_31 = stablehlo.constant dense<86.707214088598973> : tensor<4x6xf64>
    %cst_32 = stablehlo.constant dense<13.228195115474499> : tensor<4x6xf64>
    %cst_33 = stablehlo.constant dense<1.000000e+00> : tensor<4x6xf64>
    %cst_34 = stablehlo.constant dense<557.53533536939938> : tensor<4x6xf64>
    %cst_35 = stablehlo.constant dense<1027.5518868951572> : tensor<4x6xf64>
    %cst_36 = stablehlo.constant dense<934.52852717195765> : tensor<4x6xf64>
    %cst_37 = stablehlo.constant dense<526.44519499547732> : tensor<4x6xf64>
    %cst_38 = stablehlo.constant dense<196.5208329560771> : tensor<4x6xf64>
    %cst_39 = stablehlo.constant dense<48.637197098568137> : tensor<4x6xf64>
    %cst_40 = stablehlo.constant dense<7.4632105644226989> : tensor<4x6xf64>
    %cst_41 = stablehlo.constant dense<0.56418956483106886> : tensor<4x6xf64>
    %cst_42 = stablehlo.constant dense<2.4619698147353052E-10> : tensor<4x6xf64>
    %cst_43 = stablehlo.constant dense<0.70710678118654757> : tensor<f64>
    %cst_44 = stablehlo.constant dense<5.000000e-01> : tensor<f64>
    %0 = call @relu(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    %1 = call @silu(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    %2 = call @elu(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    %3 = call @softplus(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    %4 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %5 = stablehlo.multiply %4, %arg0 : tensor<4x6xf64>
    %6 = stablehlo.negate %arg0 : tensor<4x6xf64>
    %7 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %8 = stablehlo.multiply %6, %7 : tensor<4x6xf64>
    %9 = stablehlo.multiply %8, %8 : tensor<4x6xf64>
    %10 = stablehlo.negate %9 : tensor<4x6xf64>
    %11 = stablehlo.exponential %10 : tensor<4x6xf64>
    %12 = stablehlo.abs %8 : tensor<4x6xf64>
    %13 = stablehlo.multiply %cst_42, %12 : tensor<4x6xf64>
    %14 = stablehlo.add %13, %cst_41 : tensor<4x6xf64>
    %15 = stablehlo.multiply %14, %12 : tensor<4x6xf64>
    %16 = stablehlo.add %15, %cst_40 : tensor<4x6xf64>
    %17 = stablehlo.multiply %16, %12 : tensor<4x6xf64>
    %18 = stablehlo.add %17, %cst_39 : tensor<4x6xf64>
    %19 = stablehlo.multiply %18, %12 : tensor<4x6xf64>
    %20 = stablehlo.add %19, %cst_38 : tensor<4x6xf64>
    %21 = stablehlo.multiply %20, %12 : tensor<4x6xf64>
    %22 = stablehlo.add %21, %cst_37 : tensor<4x6xf64>
    %23 = stablehlo.multiply %22, %12 : tensor<4x6xf64>
    %24 = stablehlo.add %23, %cst_36 : tensor<4x6xf64>
    %25 = stablehlo.multiply %24, %12 : tensor<4x6xf64>
    %26 = stablehlo.add %25, %cst_35 : tensor<4x6xf64>
    %27 = stablehlo.multiply %26, %12 : tensor<4x6xf64>
    %28 = stablehlo.add %27, %cst_34 : tensor<4x6xf64>
    %29 = stablehlo.multiply %11, %28 : tensor<4x6xf64>
    %30 = stablehlo.multiply %cst_33, %12 : tensor<4x6xf64>
    %31 = stablehlo.add %30, %cst_32 : tensor<4x6xf64>
    %32 = stablehlo.multiply %31, %12 : tensor<4x6xf64>
    %33 = stablehlo.add %32, %cst_31 : tensor<4x6xf64>
    %34 = stablehlo.multiply %33, %12 : tensor<4x6xf64>
    %35 = stablehlo.add %34, %cst_30 : tensor<4x6xf64>
    %36 = stablehlo.multiply %35, %12 : tensor<4x6xf64>
    %37 = stablehlo.add %36, %cst_29 : tensor<4x6xf64>
    %38 = stablehlo.multiply %37, %12 : tensor<4x6xf64>
    %39 = stablehlo.add %38, %cst_28 : tensor<4x6xf64>
    %40 = stablehlo.multiply %39, %12 : tensor<4x6xf64>
    %41 = stablehlo.add %40, %cst_27 : tensor<4x6xf64>
    %42 = stablehlo.multiply %41, %12 : tensor<4x6xf64>
    %43 = stablehlo.add %42, %cst_26 : tensor<4x6xf64>
    %44 = stablehlo.multiply %43, %12 : tensor<4x6xf64>
    %45 = stablehlo.add %44, %cst_25 : tensor<4x6xf64>
    %46 = stablehlo.divide %29, %45 : tensor<4x6xf64>
    %47 = stablehlo.multiply %cst_24, %12 : tensor<4x6xf64>
    %48 = stablehlo.add %47, %cst_23 : tensor<4x6xf64>
    %49 = stablehlo.multiply %48, %12 : tensor<4x6xf64>
    %50 = stablehlo.add %49, %cst_22 : tensor<4x6xf64>
    %51 = stablehlo.multiply %50, %12 : tensor<4x6xf64>
    %52 = stablehlo.add %51, %cst_21 : tensor<4x6xf64>
    %53 = stablehlo.multiply %52, %12 : tensor<4x6xf64>
    %54 = stablehlo.add %53, %cst_20 : tensor<4x6xf64>
    %55 = stablehlo.multiply %54, %12 : tensor<4x6xf64>
    %56 = stablehlo.add %55, %cst_19 : tensor<4x6xf64>
    %57 = stablehlo.multiply %11, %56 : tensor<4x6xf64>
    %58 = stablehlo.multiply %cst_33, %12 : tensor<4x6xf64>
    %59 = stablehlo.add %58, %cst_18 : tensor<4x6xf64>
    %60 = stablehlo.multiply %59, %12 : tensor<4x6xf64>
    %61 = stablehlo.add %60, %cst_17 : tensor<4x6xf64>
    %62 = stablehlo.multiply %61, %12 : tensor<4x6xf64>
    %63 = stablehlo.add %62, %cst_16 : tensor<4x6xf64>
    %64 = stablehlo.multiply %63, %12 : tensor<4x6xf64>
    %65 = stablehlo.add %64, %cst_15 : tensor<4x6xf64>
    %66 = stablehlo.multiply %65, %12 : tensor<4x6xf64>
    %67 = stablehlo.add %66, %cst_14 : tensor<4x6xf64>
    %68 = stablehlo.multiply %67, %12 : tensor<4x6xf64>
    %69 = stablehlo.add %68, %cst_13 : tensor<4x6xf64>
    %70 = stablehlo.divide %57, %69 : tensor<4x6xf64>
    %71 = stablehlo.compare LT, %12, %cst_12 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %72 = stablehlo.select %71, %46, %70 : tensor<4x6xi1>, tensor<4x6xf64>
    %73 = stablehlo.compare LT, %10, %cst_11 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %74 = stablehlo.select %73, %cst_10, %72 : tensor<4x6xi1>, tensor<4x6xf64>
    %75 = stablehlo.compare LT, %8, %cst_10 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %76 = stablehlo.subtract %cst_9, %74 : tensor<4x6xf64>
    %77 = stablehlo.select %75, %76, %74 : tensor<4x6xi1>, tensor<4x6xf64>
    %78 = stablehlo.multiply %8, %8 : tensor<4x6xf64>
    %79 = stablehlo.multiply %cst_8, %78 : tensor<4x6xf64>
    %80 = stablehlo.add %79, %cst_7 : tensor<4x6xf64>
    %81 = stablehlo.multiply %80, %78 : tensor<4x6xf64>
    %82 = stablehlo.add %81, %cst_6 : tensor<4x6xf64>
    %83 = stablehlo.multiply %82, %78 : tensor<4x6xf64>
    %84 = stablehlo.add %83, %cst_5 : tensor<4x6xf64>
    %85 = stablehlo.multiply %84, %78 : tensor<4x6xf64>
    %86 = stablehlo.add %85, %cst_4 : tensor<4x6xf64>
    %87 = stablehlo.multiply %8, %86 : tensor<4x6xf64>
    %88 = stablehlo.multiply %cst_33, %78 : tensor<4x6xf64>
    %89 = stablehlo.add %88, %cst_3 : tensor<4x6xf64>
    %90 = stablehlo.multiply %89, %78 : tensor<4x6xf64>
    %91 = stablehlo.add %90, %cst_2 : tensor<4x6xf64>
    %92 = stablehlo.multiply %91, %78 : tensor<4x6xf64>
    %93 = stablehlo.add %92, %cst_1 : tensor<4x6xf64>
    %94 = stablehlo.multiply %93, %78 : tensor<4x6xf64>
    %95 = stablehlo.add %94, %cst_0 : tensor<4x6xf64>
    %96 = stablehlo.multiply %95, %78 : tensor<4x6xf64>
    %97 = stablehlo.add %96, %cst : tensor<4x6xf64>
    %98 = stablehlo.divide %87, %97 : tensor<4x6xf64>
    %99 = stablehlo.subtract %cst_33, %98 : tensor<4x6xf64>
    %100 = stablehlo.abs %8 : tensor<4x6xf64>
    %101 = stablehlo.compare LT, %100, %cst_33 : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %102 = stablehlo.select %101, %99, %77 : tensor<4x6xi1>, tensor<4x6xf64>
    %103 = stablehlo.multiply %5, %102 : tensor<4x6xf64>
    %104 = call @log_softmax(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    %105 = call @glu(%arg0) : (tensor<4x6xf64>) -> tensor<4x3xf64>
    %106 = call @selu(%arg0) : (tensor<4x6xf64>) -> tensor<4x6xf64>
    return %0, %1, %2, %3, %103, %104, %105, %106 : tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x6xf64>, tensor<4x3xf64>, tensor<4x6xf64>
  }
  func.func private @relu(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x6xf64>
    return %1 : tensor<4x6xf64>
  }
  func.func private @silu(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.negate %arg0 : tensor<4x6xf64>
    %1 = stablehlo.exponential %0 : tensor<4x6xf64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %3 = stablehlo.add %2, %1 : tensor<4x6xf64>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %5 = stablehlo.divide %4, %3 : tensor<4x6xf64>
    %6 = stablehlo.multiply %arg0, %5 : tensor<4x6xf64>
    return %6 : tensor<4x6xf64>
  }
  func.func private @elu(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %3 = stablehlo.compare GT, %arg0, %2, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %4 = call @_where(%3, %cst_0, %arg0) : (tensor<4x6xi1>, tensor<f64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    %5 = stablehlo.exponential_minus_one %4 : tensor<4x6xf64>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %7 = stablehlo.multiply %6, %5 : tensor<4x6xf64>
    %8 = call @_where_0(%1, %arg0, %7) : (tensor<4x6xi1>, tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    return %8 : tensor<4x6xf64>
  }
  func.func private @_where(%arg0: tensor<4x6xi1>, %arg1: tensor<f64>, %arg2: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %0 = stablehlo.convert %arg1 : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %2 = stablehlo.select %arg0, %1, %arg2 : tensor<4x6xi1>, tensor<4x6xf64>
    return %2 : tensor<4x6xf64>
  }
  func.func private @_where_0(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xf64>, %arg2: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x6xi1>, tensor<4x6xf64>
    return %0 : tensor<4x6xf64>
  }
  func.func private @softplus(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x6xf64>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %3 = stablehlo.subtract %arg0, %2 : tensor<4x6xf64>
    %4 = stablehlo.compare NE, %3, %3, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %6 = stablehlo.add %arg0, %5 : tensor<4x6xf64>
    %7 = stablehlo.abs %3 : tensor<4x6xf64>
    %8 = stablehlo.negate %7 : tensor<4x6xf64>
    %9 = stablehlo.exponential %8 : tensor<4x6xf64>
    %10 = stablehlo.log_plus_one %9 : tensor<4x6xf64>
    %11 = stablehlo.add %1, %10 : tensor<4x6xf64>
    %12 = stablehlo.select %4, %6, %11 : tensor<4x6xi1>, tensor<4x6xf64>
    return %12 : tensor<4x6xf64>
  }
  func.func private @log_softmax(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.maximum %1, %0 : tensor<4xf64>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf64>) -> tensor<4x6xf64>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x6xf64>
    %6 = stablehlo.exponential %5 : tensor<4x6xf64>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %9 = stablehlo.log %8 : tensor<4x1xf64>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<4x1xf64>) -> tensor<4x6xf64>
    %11 = stablehlo.subtract %5, %10 : tensor<4x6xf64>
    return %11 : tensor<4x6xf64>
  }
  func.func private @glu(%arg0: tensor<4x6xf64>) -> tensor<4x3xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.slice %arg0 [0:4, 0:3] : (tensor<4x6xf64>) -> tensor<4x3xf64>
    %1 = stablehlo.slice %arg0 [0:4, 3:6] : (tensor<4x6xf64>) -> tensor<4x3xf64>
    %2 = stablehlo.negate %1 : tensor<4x3xf64>
    %3 = stablehlo.exponential %2 : tensor<4x3xf64>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x3xf64>
    %5 = stablehlo.add %4, %3 : tensor<4x3xf64>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x3xf64>
    %7 = stablehlo.divide %6, %5 : tensor<4x3xf64>
    %8 = stablehlo.multiply %0, %7 : tensor<4x3xf64>
    return %8 : tensor<4x3xf64>
  }
  func.func private @selu(%arg0: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<1.0507009873554805> : tensor<f64>
    %cst_0 = stablehlo.constant dense<1.6732632423543772> : tensor<f64>
    %0 = call @elu_1(%arg0, %cst_0) : (tensor<4x6xf64>, tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %2 = stablehlo.multiply %1, %0 : tensor<4x6xf64>
    return %2 : tensor<4x6xf64>
  }
  func.func private @elu_1(%arg0: tensor<4x6xf64>, %arg1: tensor<f64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.compare GT, %arg0, %0, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %3 = stablehlo.compare GT, %arg0, %2, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %4 = call @_where(%3, %cst, %arg0) : (tensor<4x6xi1>, tensor<f64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    %5 = stablehlo.exponential_minus_one %4 : tensor<4x6xf64>
    %6 = stablehlo.convert %arg1 : tensor<f64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %8 = stablehlo.multiply %7, %5 : tensor<4x6xf64>
    %9 = call @_where_0(%1, %arg0, %8) : (tensor<4x6xi1>, tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    return %9 : tensor<4x6xf64>
  }
}
